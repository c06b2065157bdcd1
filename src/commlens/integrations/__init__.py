"""Bridges to other libraries; each needs an extra and is imported only when asked for."""
