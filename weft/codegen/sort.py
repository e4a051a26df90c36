def lower(spec): raise NotImplementedError
