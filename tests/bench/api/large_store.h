// SPDX-License-Identifier: Apache-2.0
// A store with very many objects whose process was killed before anything of its log was copied
// into the file. One thread.
#pragma once

#include <string>

namespace rocegw::bench {

inline constexpr int kTenants = 2000;
inline constexpr int kPools = 97000;
inline constexpr int kGateways = 1000;

// Writes the objects into the SQLite store at `path`, then kills its own process. Returns only when
// it could not, with the reason.
std::string FillAndDie(const std::string& path);

// Runs FillAndDie in a process of its own (this program with "--fill PATH"). MiB of the log that it
// left.
double MakeLargeStore(const std::string& path);

}  // namespace rocegw::bench
