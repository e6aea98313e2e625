// SPDX-License-Identifier: Apache-2.0
// Files by which a mounted file system outlives its command: the journal of names, and without a
// disk copy the placement of its data at the donors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/far/files/kept/journal.h"
#include "gateway/far/files/kept/records.h"
#include "gateway/far/program/remote_session.h"

namespace rocegw::far {

struct KeptNames {
  std::unique_ptr<Journal> journal;
  KeptFiles files;
  KeptSpace space;  // without a disk copy
};

// Opens the journal at `names`, or beside the disk copy if that is empty, and the placement at the
// journal's path with ".donors". The journal and what holds the data are both there, or none is.
// EINVAL: neither a disk copy nor a file of names is named, or a file is damaged.
StatusOr<KeptNames> OpenKeptNames(const std::string& names, const std::string& disk_copy,
                                  uint64_t size);

}  // namespace rocegw::far
