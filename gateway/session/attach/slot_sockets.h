// SPDX-License-Identifier: Apache-2.0
// One attach socket per slot of a pool, DIRECTORY/<8 hex of the pool's uid>/<slot>/attach.sock, so
// that a slot can be given to one consumer as a directory of its own. They come, change and go with
// the pool; sessions stay when a socket goes. Owner: session server, control thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gateway/session/attach/attach_server.h"
#include "gateway/session/services.h"
#include "gateway/tenant/settings.h"

namespace rocegw::session {

// Rights of a pool's sockets; the directories down to them have the same owner, and let those pass
// whom the socket's mode lets connect.
struct SlotRights {
  mode_t mode = 0660;
  uid_t uid = static_cast<uid_t>(-1);  // -1: as it comes
  gid_t gid = static_cast<gid_t>(-1);
  bool operator==(const SlotRights&) const = default;
};

// The pool's folder: the first eight digits of a uid that begins with hexadecimal digits, as UUIDs
// do, else of a hash of uid or name.
std::string SlotFolder(const tenant::PoolSettings& pool);

class SlotSockets {
 public:
  // Empty directory: no sockets at all.
  SlotSockets(Services& services, AttachServer& attach, std::string directory)
      : services_(services), attach_(attach), directory_(std::move(directory)) {}

  // All sockets that the pool now says, beside those that it has; or everything stays as it was,
  // and why. Those that it does not say any more go with Set.
  Status Make(const tenant::PoolSettings& pool, const SlotRights& rights);
  // Sockets as the pool now says, as far as the system makes them.
  void Set(const tenant::PoolSettings& pool, const SlotRights& rights);
  void Remove(const std::string& pool);
  // Folders that a former daemon left and that no pool has any more; those of pools that are there
  // stay as they are, since containers may have them mounted.
  void RemoveLeftovers() const;

  // Paths of a pool's sockets.
  std::vector<std::string> Paths(const std::string& pool) const;
  // Another pool that has the same folder; empty: none.
  std::string Clash(const tenant::PoolSettings& pool) const;

 private:
  struct Entry {
    std::string folder;
    SlotRights rights;
    std::map<uint32_t, std::string> sockets;  // by slot: path
  };

  Status MakeDirectory(const std::string& path, const SlotRights& rights) const;
  Status Open(const std::string& pool, Entry& entry, uint32_t slot);
  void Close(Entry& entry, uint32_t slot);
  // What is missing, up to the first that the system refuses. `made`: those that were opened.
  Status OpenMissing(const tenant::PoolSettings& pool, Entry& entry, std::vector<uint32_t>& made);
  // Whether the pool's folder may have these rights. Containers may have it mounted, so it is asked
  // before anything is taken away.
  Status MayHave(const Entry& entry, const SlotRights& rights) const;

  Services& services_;
  AttachServer& attach_;
  const std::string directory_;
  std::map<std::string, Entry> pools_;
};

}  // namespace rocegw::session
