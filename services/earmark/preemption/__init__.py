"""Which pods have to go so that a pod of higher priority fits, and making them go.

Eligibility, candidates, victims, the choice of the node, the execution: upstream's DefaultPreemption with nominations.
Not here: filters, the nominator, what plugins hold for a nominated pod (this service knows them by name only).
"""
