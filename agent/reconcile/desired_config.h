// SPDX-License-Identifier: Apache-2.0
// The newest configuration that the controller has sent, whole: what a gateway that starts anew is
// given, and what later pushes build on. Decides whether a push can be followed. Pure; one thread.
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
  // What one push may come to in parts.
  static constexpr size_t kMostBytes = size_t{256} << 20;

  enum class Verdict {
    kIncomplete,  // more parts follow
    kTaken,       // this is what is wanted now
    kNeedFull,    // it does not build on what is here
    kUnadopted,   // of another store or of this one's past: nothing is followed until it is adopted
  };
  Verdict Take(const types::v1::Push& part);

  // As one push without a nonce, for a gateway that may run anything. It adopts what the gateway
  // has followed once already, or what the controller said to adopt.
  types::v1::Push Full() const;
  // The gateway runs it.
  void Confirm() { confirmed_ = true; }
  // What was gathered of a push whose stream has ended.
  void DropParts() { parts_.reset(); }

  // For the disk, once the gateway runs it. False: not a configuration; this one stays as it was.
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

  std::string store_uuid_;  // empty: nothing has been taken yet
  int64_t revision_ = 0;
  bool confirmed_ = false;
  bool adopt_ = false;
  std::map<std::string, types::v1::ConfigObject> objects_;
  std::optional<types::v1::Push> parts_;  // gathered so far
  size_t gathered_bytes_ = 0;
};

}  // namespace rocegw::agent
