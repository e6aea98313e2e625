// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/wave_sizes.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "controlplane/migration/model/inventory.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {
namespace {

bool ReadNumber(std::string_view text, uint32_t most, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= most;
}

std::string ReadOne(std::string_view part, WaveSize& size) {
  const size_t equals = part.find('=');
  if (equals != std::string_view::npos) {
    size.name = part.substr(0, equals);
    part.remove_prefix(equals + 1);
    if (!IsName(size.name)) return "the name of a wave must be letters, digits, and -._:";
  }
  const bool read = part.ends_with('%')
                        ? ReadNumber(part.substr(0, part.size() - 1), 100, size.percent)
                        : ReadNumber(part, static_cast<uint32_t>(kMostNodes), size.count);
  return read ? "" : "a wave is a number of nodes (5) or a percentage of all (10%)";
}

}  // namespace

std::vector<WaveSize> ReadWaveSizes(std::string_view text, std::string& problem) {
  problem.clear();
  std::vector<WaveSize> sizes;
  std::set<std::string> names;
  uint32_t percent = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    WaveSize size;
    problem = ReadOne(text.substr(begin, end - begin), size);
    if (size.name.empty()) size.name = "wave-" + std::to_string(sizes.size() + 1);
    if (problem.empty() && sizes.size() == kMostWaves) problem = "too many waves";
    if (problem.empty() && !names.insert(size.name).second)
      problem = "two waves are named " + size.name;
    if (problem.empty() && size.percent != 0 && size.percent <= percent)
      problem =
          "a percentage counts earlier waves too, so that each must be larger than the one before";
    if (!problem.empty()) return {};
    if (size.percent != 0) percent = size.percent;
    sizes.push_back(std::move(size));
    begin = end + 1;
  }
  return sizes;
}

std::vector<uint32_t> CountsOf(const std::vector<WaveSize>& sizes, uint32_t total) {
  std::vector<uint32_t> counts;
  uint32_t taken = 0;
  for (const WaveSize& size : sizes) {
    uint32_t count = size.count;
    if (size.percent != 0) {
      const auto upto =
          static_cast<uint32_t>((static_cast<uint64_t>(total) * size.percent + 99) / 100);
      count = upto > taken ? upto - taken : 0;
    }
    count = std::min(count, total - taken);
    taken += count;
    counts.push_back(count);
  }
  if (!counts.empty()) counts.back() += total - taken;
  return counts;
}

}  // namespace rocegw::migration
