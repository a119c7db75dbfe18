"""Language models: provider-neutral messages, the Model protocol, its clients."""
