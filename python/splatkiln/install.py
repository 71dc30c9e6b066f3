"""install -- puts distCUDA2 and fused_ssim where trainers look for them."""
from __future__ import annotations

import sys
import types
from typing import Any

from splatkiln.operations import distCUDA2, fused_ssim, fused_ssim3d

MODULES: dict[str, dict[str, Any]] = {"simple_knn._C": {"distCUDA2": distCUDA2},
           "fused_ssim": {"fused_ssim": fused_ssim, "fused_ssim3d": fused_ssim3d, "allowed_padding": ["same", "valid"], "is_3D_supported": True}}


def install(replace: bool = True) -> list[str]:
    """Makes `from simple_knn._C import distCUDA2` and `from fused_ssim import fused_ssim` name those of this package, for all imports
    that come after in this process. replace=False leaves alone what can be imported already. Returns the names of modules that are
    now ours. Call it before the trainer's own imports."""
    ours = []
    for name, members in MODULES.items():
        if not replace and _is_there(name):
            continue
        module = types.ModuleType(name, f"{name} by splatkiln")
        vars(module).update(members)
        package = name.rpartition(".")[0]
        if package:
            parent = types.ModuleType(package, f"{package} by splatkiln")
            parent.__path__ = []  # a package, of which nothing is on disk
            setattr(parent, name.rpartition(".")[2], module)
            sys.modules[package] = parent
        sys.modules[name] = module
        ours.append(name)
    return ours


def _is_there(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True
