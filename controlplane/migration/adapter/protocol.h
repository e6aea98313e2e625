// SPDX-License-Identifier: Apache-2.0
// Protocol of adapters, version 1 (docs/operate/migration_adapters.md): one request line to a
// program, one answer line from it. Answers are foreign input, checked once here. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

inline constexpr int kAdapterProtocol = 1;
inline constexpr size_t kMostAnswerBytes = 64 << 10;  // for each call but "inventory"

struct AdapterRequest {
  std::string call;  // "hello", "inventory", or a step
  std::string id;
  std::string cluster;
  std::string node;
  Transport from = Transport::kTcp;
  Transport to = Transport::kGateway;
  int64_t deadline_seconds = 60;
  bool question = false;  // the call is no step: nothing may change
};
// Without the line's end.
std::string RequestLine(const AdapterRequest& request);

struct AdapterHello {
  std::string name;
  std::string version;
  std::vector<std::string> calls;
};
// `problem`: one line; empty: the answer was read.
AdapterHello ReadHello(std::string_view line, const std::string& id, std::string& problem);

// Answer to a step. An answer that is not understood has the outcome kUnparsable.
struct AdapterAnswer {
  Outcome outcome = Outcome::kUnparsable;
  Evidence evidence;
  std::string text;  // a line for people
};
AdapterAnswer ReadAnswer(std::string_view line, const std::string& id);

// Takes the only line out of a program's output. `problem`: there are none, or several.
std::string_view OnlyLine(std::string_view output, std::string& problem);

}  // namespace rocegw::migration
