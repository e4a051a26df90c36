"""What a program is: nodes, functions and the user's places. Knows no op by name."""

from weft.ir.location import Location as Location
from weft.ir.location import user_location as user_location
from weft.ir.node import Function as Function
from weft.ir.node import Node as Node
