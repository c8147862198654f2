"""The one error of the parser, for both of its ways."""


class BadMessage(Exception):
    """The message has not the shape of one."""
