"""What a browser calls itself, as people say it. ua-parser's rules know thousands; nothing here trusts what is said."""

from ua_parser import parse


def browser_name(user_agent: str) -> str:
    """As "Firefox 128 on Ubuntu"; only what is known of it; "an unknown browser" where nothing is."""
    found = parse(user_agent[:500])  # the rules are regular expressions, and the text is anybody's
    browser, system = found.user_agent, found.os
    program = f"{browser.family} {browser.major or ''}".strip() if browser else "an unknown browser"
    return f"{program} on {system.family}" if system else program
