"""arrays -- the type of numpy's arrays, of any element."""
from typing import Any

import numpy.typing

Array = numpy.typing.NDArray[Any]
