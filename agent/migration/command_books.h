// SPDX-License-Identifier: Apache-2.0
// Books of the commands that this host has had, one file for each migration. A book is on the disk
// before its command runs, so that a restarted agent neither runs a finished command again nor
// follows a replaced controller. One thread.
#pragma once

#include <map>
#include <string>

#include "controlplane/migration/drive/command_book.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

class CommandBooks {
 public:
  // Older books are removed beyond so many.
  static constexpr size_t kMost = 64;

  // `folder` is made with the first book.
  explicit CommandBooks(std::string folder) : folder_(std::move(folder)) {}

  // Returns the book of a migration, read from the disk the first time; an empty one for a later
  // incarnation than that of the book. EUCLEAN: the file is damaged; no command of this migration
  // runs until a person removes it. ESTALE: the book is of a later incarnation.
  StatusOr<migration::CommandBook*> Open(const std::string& migration, int64_t incarnation);
  Status Save(const std::string& migration);

 private:
  // Returns the book as it is.
  StatusOr<migration::CommandBook*> Load(const std::string& migration);
  std::string PathOf(const std::string& migration) const;
  void RemoveOldest();

  const std::string folder_;
  std::map<std::string, migration::CommandBook> books_;
};

}  // namespace rocegw::agent
