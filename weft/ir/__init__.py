"""What a program is: nodes, functions, modules, the user's places, and their text. Knows no op by
name.
"""

from weft.ir.language import Language as Language
from weft.ir.location import Location as Location, user_location as user_location
from weft.ir.node import Function as Function, Module as Module, Node as Node
from weft.ir.printer import to_text as to_text
from weft.ir.rewrite import rewrite as rewrite
