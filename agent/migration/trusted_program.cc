// SPDX-License-Identifier: Apache-2.0
#include "agent/migration/trusted_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "proto/rules/resource_name.h"

namespace rocegw::agent {
namespace {

bool IsTrusted(const struct stat& status) {
  const bool owned = status.st_uid == 0 || status.st_uid == geteuid();
  return owned && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

StatusOr<std::string> TrustedProgram(const std::string& folder, const std::string& name) {
  if (folder.empty())
    return Status(ENOENT, "this host runs no adapters (migration.adapters_dir of the agent)");
  if (!rules::IsDnsLabel(name)) return Status(EINVAL, "this is no name of an adapter");
  const std::string path = folder + "/" + name;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Status(ENOENT, "there is no adapter " + path);
  if (!S_ISREG(status.st_mode) || access(path.c_str(), X_OK) != 0)
    return Status(ENOENT, path + " is no program");
  struct stat parent {};
  if (stat(folder.c_str(), &parent) != 0 || !IsTrusted(status) || !IsTrusted(parent))
    return Status(EPERM, path + " can be changed by other users: it is not run");
  return path;
}

}  // namespace rocegw::agent
