#pragma once

#include <string>
#include <vector>

#include "distributed/lobby.h"
#include "distributed/socket.h"

namespace tilewright::distributed {

// Where a rank listens for the others, before it meets them. Then those of higher ranks come, and
// those of lower ones are called.
class Entrance {
 public:
  // Fills in where the others of this machine find this process and, by the address, those of
  // other machines; an empty address: nowhere.
  Entrance(Member& own, const std::string& address);

  // A connection to each rank; none to this one. Raises a usage error where ranks of several
  // machines have no address, and Error(unavailable) with the ranks that are not reached before the
  // deadline.
  std::vector<FileDescriptor> connect(const Meeting& meeting, int own, const Lobby& lobby) const;

 private:
  // Whoever has called, if he is a rank above this one.
  static void admit(const FileDescriptor& listener, const Meeting& meeting, int own,
                    std::vector<FileDescriptor>& connections);
  static void seat(FileDescriptor connection, const Meeting& meeting, int own,
                   std::vector<FileDescriptor>& connections);

  FileDescriptor local_, remote_;
};

}  // namespace tilewright::distributed
