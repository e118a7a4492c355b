"""Run the operator with another program in the place of CBC: the engine's path comes first.

A script of its own, since an engine's path is no setting: nobody should need to choose one.
"""

import asyncio
import os
import sys

from tutti.operator import main
from tutti.operator.settings import Settings
from tutti.reporting import logs
from tutti.strategies import load
from tutti.strategies.ilp.engine import Cbc
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Strategy

engine, _, kubeconfig = sys.argv[1:]


def strategy_of(name: str) -> Strategy:
    """The strategy of this name; the exact one runs the other program."""
    return IlpStrategy(Cbc(engine)) if name == "ilp" else load(name)


settings = Settings.from_environment(os.environ)
logs.configure(settings.log_format, settings.log_level)
asyncio.run(main.serve(settings, kubeconfig, strategy_of=strategy_of))
