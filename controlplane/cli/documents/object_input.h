// SPDX-License-Identifier: Apache-2.0
// Objects in the form that users write: YAML (or JSON, which is YAML) documents with the fields of
// the proto messages, quantities and durations in human units, enum values in any case; or words
// "path=value" on the command line. The kind of an object follows from its name. Pure except for
// reading the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/cli/client/call_result.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"

namespace rocegw::cli {

// Object with only the given fields.
struct ObjectInput {
  const Kind* kind = nullptr;
  MessagePtr object;
  // Given fields as an update mask: "spec.quota.peak.qps", "meta.labels".
  std::vector<std::string> mask;
  // "FILE:12", for error texts.
  std::string where;
};

// Reads all documents of the file ("-": standard input), in order. A document is an object, or
// lists of objects as `get -o json` prints them. Reports all errors with their positions.
CallResult ReadObjects(const std::string& file, std::vector<ObjectInput>& out);
// Reads objects from text; `source` is for error texts.
CallResult ParseObjects(std::string_view text, const std::string& source,
                        std::vector<ObjectInput>& out);

// Parses words such as "weight=3", "quota.peak.qps=5k", "labels.zone=a",
// "allowed_peers=[10.0.0.0/8]" for the object of this name. Paths begin below spec, "labels." below
// meta; "path=" removes a value.
CallResult ParseAssignments(const Kind& kind, const std::string& name,
                            const std::vector<std::string>& words, ObjectInput& out);

// Returns all possible paths of assignments, for completion: "quota.peak.qps", ...
std::vector<std::string> AssignablePaths(const Kind& kind);

// Returns `before` with the fields of the input. Map entries of assignments are added to the
// existing ones (whole_maps: they replace them).
MessagePtr Merged(const google::protobuf::Message& before, const ObjectInput& input,
                  bool whole_maps);

}  // namespace rocegw::cli
