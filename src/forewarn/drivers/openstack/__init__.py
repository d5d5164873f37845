"""The OpenStack driver: nova does the work, and what has become of it is read from nova alone.

`driver.py` answers the port, cordons and fences; `server_steps.py` carries out the steps of machines,
`decisions.py` says what is next for one, from what was seen of it, and `attempts.py` whether that may be
sent; `inventory.py` lists what there is. `compute_api.py` is the one module that knows openstacksdk.
"""
