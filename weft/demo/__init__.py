"""`weft demo`: what Weft promises, tried on this machine, with figures measured while you watch.

`programs.py` is the user's side; the demo copies it to a folder and runs it from there, since that
is how Weft meets programs: with source of their own, which errors and graphs point to.
"""

from weft.demo.story import tell as tell
