// SPDX-License-Identifier: Apache-2.0
// Sizes of waves, as a person writes them: "canary=1,10%,50%,100%". Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw::migration {

struct WaveSize {
  std::string name;
  uint32_t count = 0;    // nodes of this wave; 0: by percentage
  uint32_t percent = 0;  // share of all nodes, those of earlier waves included
};

// Reads the sizes. A wave without name is named after its place, the first with `canary=` "canary".
// `problem`: one line; empty: they were read.
std::vector<WaveSize> ReadWaveSizes(std::string_view text, std::string& problem);

// Returns the number of nodes of each wave out of `total`. Waves that would be empty are left out,
// by an entry 0; the last wave takes what is left.
std::vector<uint32_t> CountsOf(const std::vector<WaveSize>& sizes, uint32_t total);

}  // namespace rocegw::migration
