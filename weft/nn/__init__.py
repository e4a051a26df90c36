"""Neural networks: functions, modules, losses."""

from weft.nn import functional as functional
