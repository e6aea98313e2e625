// SPDX-License-Identifier: Apache-2.0
// Maker of seals over new audit records (chain.h). One controller does it at a time: its seals
// carry the fence of its term, and a concurrent seal of another is never replaced. After the first
// seal it follows the store, so the cost depends on the new records only. One thread.
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

  // Seals new records; waits. nullopt: nothing new. Else the head of the chain, which should be
  // kept outside of the store. ECANCELED: another controller does it. After an error the next call
  // reads again.
  StatusOr<std::optional<std::string>> SealNew(const store::Compare& fence);

 private:
  struct Newest {
    uint64_t number = 0;  // 0: none
    controlplane::v1::AuditSeal seal;
    store::Revision mod_revision = 0;
  };
  // Reads the newest seal and all records behind it, and starts a watch there.
  Status Begin();
  // Reads the changes since then.
  Status Follow();
  StatusOr<Newest> FindNewest();
  StatusOr<std::optional<store::Entry>> Find(uint64_t number);
  StatusOr<std::optional<std::string>> Seal(const store::Compare& fence);

  store::Store& store_;
  Newest newest_;
  std::vector<Digested> unsealed_;
  store::Revision seen_ = 0;  // all records up to here are sealed or in unsealed_
  std::unique_ptr<store::BlockingWatch> watch_;  // nullptr: start again
};

}  // namespace rocegw::audit
