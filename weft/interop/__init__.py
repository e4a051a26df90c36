"""Other libraries' models and tensors. Each module here imports its library, and nothing of Weft
imports them: say `import weft.interop.torch`.
"""
