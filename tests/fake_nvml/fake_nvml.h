#pragma once

// What tests set of the fake management library, through the symbol `fake_nvml_state` of it.
struct FakeNvmlState {
  int init_result;
  int knows_no_uuid;           // devices are found by their place on PCIe alone
  int hidden;                  // of so many GPUs from the last on it knows nothing
  int switch_links[4];         // of each GPU
  int direct_links[4][4];      // from each GPU to each
  int ancestor;                // of any two on PCIe
  unsigned link_megabytes;     // of a link's signals; 0: it does not say
  unsigned generation, width;  // of PCIe
  int starts, ends;            // how often it was asked to
};
