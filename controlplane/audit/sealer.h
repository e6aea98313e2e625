// SPDX-License-Identifier: Apache-2.0
// Makes seals over new audit records (chain.h). One controller does it at a time: its seals carry
// the fence of its term, and a seal that somebody else has made meanwhile is never replaced. What
// it costs depends on what is new: after the first seal it follows the store. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/audit/chain.h"
#include "controlplane/store/store.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::audit {

inline constexpr std::string_view kSealPrefix = "seal/";

class Sealer {
 public:
  // The store outlives it.
  explicit Sealer(store::Store& store) : store_(store) {}

  // Waits. nullopt: nothing is new. Else the head of the chain now, which is worth being kept
  // outside of the store. ECANCELED: another controller does it. After an error the next call reads
  // anew.
  StatusOr<std::optional<std::string>> SealNew(const store::Compare& fence);

 private:
  struct Newest {
    uint64_t number = 0;  // 0: there is none
    controlplane::v1::AuditSeal seal;
    store::Revision mod_revision = 0;
  };
  // The newest seal, all records behind it, and a watch from there.
  Status Begin();
  // What has come since.
  Status Follow();
  StatusOr<Newest> FindNewest();
  StatusOr<std::optional<store::Entry>> Find(uint64_t number);
  StatusOr<std::optional<std::string>> Seal(const store::Compare& fence);

  store::Store& store_;
  Newest newest_;
  std::vector<Digested> unsealed_;
  store::Revision seen_ = 0;  // all records until here are in a seal or in unsealed_
  std::unique_ptr<store::BlockingWatch> watch_;  // nullptr: begin anew
};

}  // namespace rocegw::audit
