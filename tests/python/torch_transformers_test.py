"""tilewright.transformers on the target cpu: models with random weights, against `sdpa`."""

import copy
import itertools
import unittest
from unittest import mock

import tilewright.transformers
import torch
import transformers
from torch_reference import require_close, require_refusal

SIZES = {"vocab_size": 50, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 8}
CAUSAL = {**SIZES, "num_key_value_heads": 2, "pad_token_id": 0, "max_position_embeddings": 64}
PADDINGS = {"none": [12, 12, 12], "left": [12, 7, 1], "right": [12, 7, 1]}


def pair(make, configuration):
    """The same model with both implementations."""
    tilewright.transformers.register()
    models = []
    for name in ("tilewright", "sdpa"):
        torch.manual_seed(0)
        of_model = copy.deepcopy(configuration)
        of_model._attn_implementation = name
        models.append(make(of_model))
    models[1].load_state_dict(models[0].state_dict())
    return models


def never_by_pytorch():
    return mock.patch.object(tilewright.transformers, "_by_pytorch",
                             side_effect=AssertionError("PyTorch's own attention"))


def llama():
    return pair(transformers.LlamaForCausalLM, transformers.LlamaConfig(**CAUSAL))


def padded(side):
    """Token numbers and their mask."""
    torch.manual_seed(1)
    ids, lengths = torch.randint(1, 50, (3, 12)), torch.tensor(PADDINGS[side])
    place = torch.arange(12).expand(3, 12)
    mask = place >= 12 - lengths[:, None] if side == "left" else place < lengths[:, None]
    return ids.masked_fill(~mask, 0), mask.long()


IS_OLD = int(transformers.__version__.partition(".")[0]) < 5


class Versions(unittest.TestCase):
    @unittest.skipUnless(IS_OLD, "transformers is new enough")
    def test_older_ones_are_refused(self):
        require_refusal(self, tilewright.transformers.register, transformers.__version__)


@unittest.skipIf(IS_OLD, "transformers is older than 5")
class Models(unittest.TestCase):
    @never_by_pytorch()
    def test_a_causal_model_trains(self, _):
        """Qwen's has biases, by which rows of padding are no zeros."""
        with_biases = (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**CAUSAL))
        for side, make in itertools.product(PADDINGS, (llama, lambda: pair(*with_biases))):
            with self.subTest(side, make=make):
                ids, mask = padded(side)
                losses = []
                models = make()
                for model in models:
                    labels = ids.masked_fill(mask == 0, -100)
                    loss = model(ids, attention_mask=mask, labels=labels).loss
                    loss.backward()
                    losses.append(loss.detach())
                require_close(self, "loss", losses[0], losses[1].double(), torch.float32)
                for (name, ours), theirs in zip(models[0].named_parameters(),
                                                models[1].parameters()):
                    require_close(self, name, ours.grad, theirs.grad.double(), torch.float32)

    @never_by_pytorch()
    def test_it_generates_with_a_cache(self, _):
        for side in ("none", "left"):
            ids, mask = padded(side)
            answers = [model.generate(ids, attention_mask=mask, max_new_tokens=8, do_sample=False)
                       for model in llama()]
            self.assertTrue(torch.equal(*answers), side)

    def test_it_generates_with_a_static_cache(self):
        """A sliding window is Tilewright's there too, whose masks transformers then make twice."""
        ids, mask = padded("left")
        windowed = pair(transformers.MistralForCausalLM,
                        transformers.MistralConfig(**CAUSAL, sliding_window=5))
        for models in (llama(), windowed):
            answers = [model.generate(ids, attention_mask=mask, max_new_tokens=8, do_sample=False,
                                      cache_implementation="static") for model in models]
            self.assertTrue(torch.equal(*answers), type(models[0]).__name__)

    @never_by_pytorch()
    def test_a_sliding_window(self, _):
        ours, theirs = pair(transformers.MistralForCausalLM,
                            transformers.MistralConfig(**CAUSAL, sliding_window=5))
        for side in PADDINGS:
            ids, mask = padded(side)
            results = [model(ids, attention_mask=mask).logits[mask == 1].detach()
                       for model in (ours, theirs)]
            require_close(self, side, results[0], results[1].double(), torch.float32)

    @never_by_pytorch()
    def test_an_encoder(self, _):
        ours, theirs = pair(transformers.BertModel, transformers.BertConfig(**SIZES))
        for side in PADDINGS:
            ids, mask = padded(side)
            results = [model.eval()(ids, attention_mask=mask).last_hidden_state[mask == 1].detach()
                       for model in (ours, theirs)]
            require_close(self, side, results[0], results[1].double(), torch.float32)

    def test_masks_that_are_none_of_ours(self):
        """Holes, and a mask of each query and key, are PyTorch's."""
        ids, _ = padded("none")
        holes = (torch.arange(12) % 3 > 0).long().expand(3, 12)
        whole = torch.rand(3, 1, 12, 12) > 0.3
        whole |= torch.eye(12, dtype=torch.bool)
        for mask in (holes, whole):
            results = [model(ids, attention_mask=mask).logits.detach() for model in llama()]
            require_close(self, "logits", results[0], results[1].double(), torch.float32)

    def test_what_cannot_be_done(self):
        configuration = transformers.LlamaConfig(**CAUSAL, attention_dropout=0.1)
        model, _ = pair(transformers.LlamaForCausalLM, configuration)
        require_refusal(self, lambda: model.train()(padded("none")[0]), "dropout is 0.1")
