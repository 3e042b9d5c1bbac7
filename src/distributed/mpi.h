#pragma once

#include <memory>

#include "distributed/way.h"

namespace tilewright::distributed {

// A broadcast of MPI carries the ticket. Error(unavailable) where there is no MPI.
std::shared_ptr<Rendezvous::Way> mpi_way();

}  // namespace tilewright::distributed
