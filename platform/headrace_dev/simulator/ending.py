"""The end of a simulator's process, however it fares."""

import subprocess


def end(process: "subprocess.Popen[bytes]") -> None:
    """Asked first, killed after five seconds; harmless when repeated."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
