"""The rules of the served kinds: one module a kind or family; `table` says which kind has which.

Strategies decide about one object at a time. Storing, versions, deletion and watches are the registry's.
"""
