"""The page: the device map, the settling windows, the queue, why a pod is pending, and what a pod would cost.

Pure: `cells`, `board`, `windows`, `queueing`, `whatif`. The rest follows, sends and serves. Nothing is decided here.
"""
