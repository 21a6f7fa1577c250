"""Scenario files played in virtual time: all services in one process on the embedded API in memory.

Here: reading scenarios, playing them, checking what must hold, telling what happened. Not here: any decision about pods
or devices; the services are those of production, composed by their own build().
"""

from earmark.simulation.errors import ScenarioError
from earmark.simulation.hooks import Hooks
from earmark.simulation.loader import load_scenarios
from earmark.simulation.player import play
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario

__all__ = ["Hooks", "Outcome", "Scenario", "ScenarioError", "load_scenarios", "play"]
