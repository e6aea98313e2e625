// SPDX-License-Identifier: Apache-2.0
// Attach sockets of a pool's slots, DIRECTORY/<8 hex of the pool's uid>/<slot>/attach.sock, so that
// a slot can be given to one consumer as a directory. They are created, changed and removed with
// the pool; sessions stay when a socket is removed. Owner: session server, control thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gateway/session/attach/attach_server.h"
#include "gateway/session/services.h"
#include "gateway/tenant/settings.h"

namespace rocegw::session {

// Owner and mode of a pool's sockets. Their directories have the same owner and are passable for
// users who may connect.
struct SlotRights {
  mode_t mode = 0660;
  uid_t uid = static_cast<uid_t>(-1);  // -1: unchanged
  gid_t gid = static_cast<gid_t>(-1);
  bool operator==(const SlotRights&) const = default;
};

// Returns the name of the pool's directory: the first eight digits of a uid that begins with
// hexadecimal digits, as UUIDs do, else of a hash of uid or name.
std::string SlotFolder(const tenant::PoolSettings& pool);

class SlotSockets {
 public:
  // An empty directory name means: no sockets.
  SlotSockets(Services& services, AttachServer& attach, std::string directory)
      : services_(services), attach_(attach), directory_(std::move(directory)) {}

  // Creates the missing sockets of the pool, or changes nothing and returns the error. Set removes
  // those that the pool does not have any more.
  Status Make(const tenant::PoolSettings& pool, const SlotRights& rights);
  // Creates and removes sockets to match the pool, as far as the system allows.
  void Set(const tenant::PoolSettings& pool, const SlotRights& rights);
  void Remove(const std::string& pool);
  // Removes directories of an earlier daemon without a pool. Those of existing pools stay, since
  // containers may have mounted them.
  void RemoveLeftovers() const;

  // Returns the paths of a pool's sockets.
  std::vector<std::string> Paths(const std::string& pool) const;
  // Returns another pool with the same directory; empty: none.
  std::string Clash(const tenant::PoolSettings& pool) const;

 private:
  struct Entry {
    std::string folder;
    SlotRights rights;
    std::map<uint32_t, std::string> sockets;  // by slot: path
  };

  // Returns an error if the tenant, or all together, would have more sockets than they may.
  Status MayOpen(const std::string& pool) const;
  Status MakeDirectory(const std::string& path, const SlotRights& rights) const;
  Status Open(const std::string& pool, Entry& entry, uint32_t slot);
  void Close(Entry& entry, uint32_t slot);
  // Creates missing sockets until the system refuses one. `made`: the created ones.
  Status OpenMissing(const tenant::PoolSettings& pool, Entry& entry, std::vector<uint32_t>& made);
  // Checks if the pool's directory may get these rights. Containers may have mounted it, so this is
  // checked before anything is removed.
  Status MayHave(const Entry& entry, const SlotRights& rights) const;

  Services& services_;
  AttachServer& attach_;
  const std::string directory_;
  std::map<std::string, Entry> pools_;
};

}  // namespace rocegw::session
