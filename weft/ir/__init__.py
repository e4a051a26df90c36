"""What a program is: nodes, functions and the user's places. Knows no op by name."""

from weft.ir.location import Location as Location, user_location as user_location
from weft.ir.node import Function as Function, Node as Node
