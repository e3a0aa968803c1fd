"""Draw the figures of the papers. Each module has functions that return the data of a figure, and that draw the figure.

From a notebook:

    from fairseq_posenc.analysis import cosine, trained
    similarity = cosine.data(trained.load("checkpoint_last.pt"))
    cosine.draw([similarity])

`python -m fairseq_posenc figures` writes the figures as PNG and PDF, and their data as CSV. Drawing needs matplotlib;
the data do not.
"""
