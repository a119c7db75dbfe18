"""Language models: provider-neutral messages, the ``Model`` protocol, providers, prices and rate limits."""
