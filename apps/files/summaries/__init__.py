"""Summaries of whole files: sections first, then summaries of summaries, each kept with the pages it is from.

`plan` cuts the file into sections and `prompts` speaks to the model, both pure; `work` is the stage that a worker does;
`requests` is what a person asks for and sees.
"""
