"""Read by Python itself at the start of every process of the CPU server, whose PYTHONPATH begins with this folder."""

import stand_in_for_triton
import torchvision_on_cpu

stand_in_for_triton.install()
torchvision_on_cpu.install()
