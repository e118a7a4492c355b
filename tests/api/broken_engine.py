"""Run the operator with another program in the place of CBC: the engine's path comes first.

A script of its own, since an engine's path is no setting: nobody should need to choose one.
"""

import asyncio
import os
import sys

from tutti import main
from tutti.settings import Settings
from tutti.strategies import STRATEGIES
from tutti.strategies.ilp import IlpStrategy

engine, _, kubeconfig = sys.argv[1:]
settings = Settings.from_environment(os.environ)
main.configure_logs(settings.log_format, settings.log_level)
strategies = {**STRATEGIES, "ilp": lambda: IlpStrategy(engine)}
asyncio.run(main.serve(settings, kubeconfig, strategies=strategies))
