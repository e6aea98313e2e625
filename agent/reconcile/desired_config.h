// SPDX-License-Identifier: Apache-2.0
// Latest complete configuration from the controller: given to a restarted gateway, and the base of
// later pushes. Decides if a push can be followed. Pure; one thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::agent {

class DesiredConfig {
 public:
  // Limit of one push in parts.
  static constexpr size_t kMostBytes = size_t{256} << 20;

  enum class Verdict {
    kIncomplete,  // more parts follow
    kTaken,       // is the desired configuration now
    kNeedFull,    // does not build on the current one
    kUnadopted,   // from another store or an earlier state: not followed until adopted
  };
  Verdict Take(const types::v1::Push& part);

  // Returns it as one push without a nonce, for a gateway in any state. The push adopts stores that
  // the gateway has followed before, or that the controller told to adopt.
  types::v1::Push Full() const;
  // Records that the gateway runs it.
  void Confirm() { confirmed_ = true; }
  // Drops the parts of a push whose stream has ended.
  void DropParts() { parts_.reset(); }

  // Convert to and from the form on disk, once the gateway runs it. Restore returns false, and
  // changes nothing, if it is not a configuration.
  types::v1::AppliedConfig Saved() const;
  bool Restore(const types::v1::AppliedConfig& saved);

  // See Hello.objects_digest.
  uint64_t Digest() const;
  const std::string& store_uuid() const { return store_uuid_; }
  int64_t revision() const { return revision_; }
  const types::v1::ConfigObject* Find(const std::string& name) const;

 private:
  Verdict Judge(const types::v1::Push& first) const;
  void Merge();

  std::string store_uuid_;  // empty: no configuration yet
  int64_t revision_ = 0;
  bool confirmed_ = false;
  bool adopt_ = false;
  std::map<std::string, types::v1::ConfigObject> objects_;
  std::optional<types::v1::Push> parts_;  // parts so far
  size_t gathered_bytes_ = 0;
};

}  // namespace rocegw::agent
