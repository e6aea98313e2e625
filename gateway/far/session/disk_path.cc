// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/disk_path.h"

namespace rocegw::far {

DiskPath::Room DiskPath::Reserve(DiskWrite& write) {
  write.data = copy_->Allocate(write.length);
  const bool full = write.data == nullptr && copy_->up();
  if (full && !full_since_) {
    full_since_ = DiskCopy::Clock::now();
    waits_.count++;
  } else if (!full && full_since_) {
    waits_.time += DiskCopy::Clock::now() - *full_since_;
    full_since_.reset();
  }
  if (full) return Room::kFull;
  return write.data != nullptr ? Room::kGiven : Room::kDown;
}

}  // namespace rocegw::far
