# SPDX-License-Identifier: MIT OR Apache-2.0
"""The names of Flent 2.3.0, printed as JSON. `.venv-flent/bin/python` runs this file: it reads the installed package."""

import ast
import inspect
import json
import re
from pathlib import Path

import flent
from flent import combiners, formatters, plotters, runners, settings, testenv, util

HOME = Path(flent.__file__).parent
PARAMETER_CALL = re.compile(r"(?:get|try|set)_test_parameters?\(\s*(\([^)]*\)|[^,)]+)")


def options():
    """Each option, with its key of the rc file and of batches. Flent hides --log-scale."""
    return {max(one.option_strings, key=len): one.dest.lower() for one in settings.parser._actions if one.option_strings}


def parameters():
    found = {f"{one}s" for one in testenv.STREAM_CONFIG_PARAM_NAMES} | {"stream_delays"}
    for path in (HOME / "tests").iterdir():
        text = path.read_text()
        for call in PARAMETER_CALL.findall(text):
            given = ast.literal_eval(call)
            found.update([given] if isinstance(given, str) else given)
        found.update(re.findall(r"TEST_PARAMETERS\[['\"]([\w-]+)['\"]\]", text))
        found.update(re.findall(r"get_env_parameter\(['\"](\w+)['\"]", text))
    # Both spellings of a name are one parameter.
    return sorted({one.replace("-", "_") for one in found})


def classes(module, base, end):
    """The names by which tests and options name the classes of a module."""
    found = [name for name, one in inspect.getmembers(module, inspect.isclass) if issubclass(one, base) and one.__module__ == module.__name__]
    return sorted(re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix(end)).lower() for name in found if name != end)


def batch_keys():
    """Keys that the program of batches reads, beside those of the options."""
    text = (HOME / "batch.py").read_text()
    found = re.findall(r"(?:batch|b|cmd|command|vals|settings|new|c)(?:\.get\(|\[)['\"]([a-z_]+)['\"]", text)
    return sorted({*found, *re.findall(r"\$\{(\w+)\}", text), "for_", "repetition", "batch_name", "batch_time"})


def gui():
    """Actions, docks and fields of the windows, and entries of the menus that open by a click."""
    found = set()
    for path in (HOME / "ui").glob("*.ui"):
        text = path.read_text()
        found.update(re.findall(r'<action name="(\w+)"', text))
        found.update(re.findall(r'<widget class="(?:QDockWidget|QLineEdit|QComboBox|QSpinBox|QCheckBox|QProgressBar)" name="(\w+)"', text))
    found.update(one.replace("&", "").replace(" '%s'", "") for one in re.findall(r'QAction\(\s*"([^"]+)"', (HOME / "gui.py").read_text()))
    return sorted(found)


print(json.dumps({
    "Options": options(),
    "Test parameters": parameters(),
    "Runners": classes(runners, runners.RunnerBase, "Runner"),
    "Formatters": classes(formatters, formatters.Formatter, "Formatter"),
    "Plot types": classes(plotters, plotters.Plotter, "Plotter"),
    "Groups of combined plots": classes(combiners, combiners.Combiner, "Combiner"),
    "Reducers": classes(combiners, combiners.Reducer, "Reducer"),
    "Keys of batches": batch_keys(),
    "Window": gui(),
    "Tests": sorted(path.stem for path in (HOME / "tests").glob("*.conf")),
    "Markings": sorted(runners.MARKING_MAP),
    "version": util.VERSION if hasattr(util, "VERSION") else flent.build_info.VERSION,
}))  # fmt: skip
