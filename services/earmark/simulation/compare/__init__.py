"""The KEP's way beside simpler ones, on the same scenarios: who is evicted, what is stolen, how long it takes.

The alternatives are other cores of dynamicresources, composed for the simulation only; production code knows none.
"""

from earmark.simulation.compare.alternatives import MODES, Mode
from earmark.simulation.compare.measure import Figures
from earmark.simulation.compare.run import compare, measured

__all__ = ["MODES", "Figures", "Mode", "compare", "measured"]
