"""How alike unrelated texts are to an embedding model, measured once with fixed questions and texts.

The cosine of texts that have nothing to do with each other is a property of the model: near 0 in one, 0.75 in another.
Counted in standard deviations above that, all models look alike, and one bar serves them all. Each question below is
compared with every text but its own: 1,560 pairs.
"""

from __future__ import annotations

import math

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import Embedder, Scale, Vector
from hermes_memory_pgvector.errors import EmbeddingRejected

PAIRS: tuple[tuple[str, str], ...] = (
    ("When does the train to Lyon leave?", "The train to Lyon departs at 7:40 from platform three."),
    ("How is the cache invalidated?", "Entries of the cache expire after ten minutes or when their row changes."),
    ("What does Martha's daughter study?", "Martha's daughter is in her second year of marine biology."),
    ("Which paint did we pick for the kitchen?", "The kitchen walls will be painted in a pale sage green."),
    ("Who repairs the bicycle?", "The bicycle is with Joachim, who trues the rear wheel until Friday."),
    ("How much salt goes into the bread dough?", "Use eleven grams of salt for every kilo of flour in the dough."),
    ("Why did the deployment fail last night?", "The rollout stopped because a container ran out of memory at 2 a.m."),
    ("Is the dog allowed to eat grapes?", "Grapes are poisonous for dogs; keep the bowl out of reach."),
    ("What is the password policy of the office?", "Passwords need sixteen characters and are changed once a year."),
    ("Where is the spare key of the cabin?", "A second key hangs behind the third beam in the woodshed."),
    ("Which doctor looks at Peter's knee?", "Peter has an appointment with the orthopaedist Dr. Lindqvist."),
    ("How do I sort a list backwards in Python?", "Pass reverse=True to sorted to get descending order."),
    ("When is the rent due?", "The landlord expects the transfer by the third working day of a month."),
    ("What was the score of the handball match?", "Our team lost the handball final twenty-four to twenty-seven."),
    ("Which wine goes with the trout?", "A dry Riesling suits the smoked fish best."),
    ("How far is the moon?", "Light needs a little more than a second from the lunar surface to us."),
    ("Who wrote the minutes of the board meeting?", "Ines took notes while the directors discussed the merger."),
    ("What is wrong with the washing machine?", "It leaks at the door seal and stops in the spin cycle."),
    ("Which index speeds up the report?", "A composite index on customer and date cut the query to 40 ms."),
    ("How old is the oak in the park?", "Foresters guess that the tree was planted around 1780."),
    ("When do the swallows come back?", "The first swallows return to the barn in the middle of April."),
    ("What does the insurance pay for hail?", "Damage by hail is covered above an excess of 300 euros."),
    ("Which chords does the chorus use?", "The refrain moves from A minor through F to C and G."),
    ("How do I renew my passport?", "Bring a photograph and the old document to the citizens' office."),
    ("Who won the chess tournament?", "Nadia took first place with eight and a half points out of nine."),
    ("What is the budget for the trade fair?", "Marketing may spend fourteen thousand on the booth in Hanover."),
    ("Why is the tomato plant yellow?", "Its leaves lack magnesium; a spoon of Epsom salt helps."),
    ("Where did Tom spend his holidays?", "Tom hiked for two weeks across the Faroe Islands."),
    ("Which port does the proxy listen on?", "The reverse proxy answers on 8443 and forwards to the app."),
    ("How is the violin tuned?", "Its strings are G, D, A and E, from low to high."),
    ("What did the museum buy?", "It acquired a bronze lamp from a Roman shipwreck."),
    ("When does Clara's shift end?", "Clara leaves the ward at half past ten in the evening."),
    ("How many chairs do we need for the wedding?", "One hundred and twelve guests have said that they will come."),
    ("Which license does the library have?", "The package is published under Apache 2.0."),
    ("What keeps the roof from leaking?", "New copper flashing was soldered around the chimney."),
    ("Why do the headlights flicker?", "A corroded ground strap makes the car's lamps unsteady."),
    ("Who feeds the cat in July?", "The neighbour's son fills the bowl while we are at the sea."),
    ("How is a GPU reset after a hang?", "Unload the driver, wait, and bind the device again."),
    ("What does the tide table say for Sunday?", "High water is at 4:12 and 16:39, with five metres of range."),
    ("Which exercise helps against back pain?", "Ten minutes of swimming backstroke each day ease the spine."),
)


_LEAST_SD = 0.001
"""Below this it is rounding that tells the texts apart; models measured so far have 0.02 to 0.08."""


def measure(embedder: Embedder, deadline: Deadline) -> Scale:
    """The scale of a model; EmbeddingRejected when it does not tell these texts apart at all."""
    questions = embedder.embed_queries([question for question, _ in PAIRS], deadline)
    texts = embedder.embed_documents([text for _, text in PAIRS], deadline)
    unrelated = [
        _cosine(question, text)
        for row, question in enumerate(questions)
        for column, text in enumerate(texts)
        if row != column and question is not None and text is not None
    ]
    # Half of the pairs tell as much; a model that refuses more of these short texts cannot be measured.
    if len(unrelated) < len(PAIRS) * (len(PAIRS) - 1) // 2:
        raise EmbeddingRejected("the embedding model gave no vectors for most of the texts that measure it")
    mean = math.fsum(unrelated) / len(unrelated)
    scale = Scale(mean, math.sqrt(math.fsum((each - mean) ** 2 for each in unrelated) / len(unrelated)))
    if scale.sd < _LEAST_SD:
        raise EmbeddingRejected("the embedding model gives every text the same vector")
    return scale


def _cosine(one: Vector, other: Vector) -> float:
    # Vectors of an embedder have unit length.
    return sum(a * b for a, b in zip(one, other, strict=True))
