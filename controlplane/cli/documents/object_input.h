// SPDX-License-Identifier: Apache-2.0
// Objects as people write them: YAML (or JSON, which is YAML) documents with the fields of the
// proto messages, quantities and durations in human units, enum values in any case; or words
// "path=value" on the command line. The kind of an object follows from its name. Pure but for
// reading the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/cli/client/call_result.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"

namespace rocegw::cli {

// An object with what was said of it and no more.
struct ObjectInput {
  const Kind* kind = nullptr;
  MessagePtr object;
  // The fields that were said, as an update mask: "spec.quota.peak.qps", "meta.labels".
  std::vector<std::string> mask;
  // "FILE:12", for messages.
  std::string where;
};

// All documents of the file ("-": standard input), in order. A document is an object, or lists of
// them as `get -o json` prints. All mistakes are told, each with its place.
CallResult ReadObjects(const std::string& file, std::vector<ObjectInput>& out);
// As ReadObjects, from text; `source` is for messages.
CallResult ParseObjects(std::string_view text, const std::string& source,
                        std::vector<ObjectInput>& out);

// Words "weight=3", "quota.peak.qps=5k", "labels.zone=a", "allowed_peers=[10.0.0.0/8]" for the
// object of this name; paths begin below spec, "labels." below meta; "path=" takes a value away.
CallResult ParseAssignments(const Kind& kind, const std::string& name,
                            const std::vector<std::string>& words, ObjectInput& out);

// All paths that assignments can begin with, for completion: "quota.peak.qps", ...
std::vector<std::string> AssignablePaths(const Kind& kind);

// `before` with the fields of the input; entries of maps that assignments name are put into those
// that are there (whole_maps: they replace them).
MessagePtr Merged(const google::protobuf::Message& before, const ObjectInput& input,
                  bool whole_maps);

}  // namespace rocegw::cli
