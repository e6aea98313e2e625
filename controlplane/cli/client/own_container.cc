// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/own_container.h"

#include <charconv>
#include <fstream>
#include <iterator>

namespace rocegw::cli {
namespace {

// Returns an empty text for a file that cannot be read.
std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

bool HolderIsInThisContainer(const std::string& lock, const std::string& proc) {
  const std::string text = Read(lock);
  int holder = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), holder);
  if (error != std::errc() || holder <= 0 || end == text.data() + text.size() || *end != '\n')
    return false;
  const std::string groups = Read(proc + "/" + std::to_string(holder) + "/cgroup");
  return !groups.empty() && groups == Read(proc + "/self/cgroup");
}

}  // namespace rocegw::cli
