"""Stands in for the part of aiocoap's tests that its source distribution leaves out."""
