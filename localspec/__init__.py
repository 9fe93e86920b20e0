"""localspec: does speculative decoding pay on this machine, and with which settings?"""

__version__ = "0.1.0"
