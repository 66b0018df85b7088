// As much of an MPI as <leveret/mpi.hpp> uses, to compile it where there is none. Nothing is linked
// with it.
#ifndef LEVERET_TESTS_API_MPI_H
#define LEVERET_TESTS_API_MPI_H

#define MPI_VERSION 3
#define MPI_SUCCESS 0
#define MPI_MAX_ERROR_STRING 512

typedef struct stub_comm* MPI_Comm;
typedef struct stub_info* MPI_Info;
typedef struct stub_type* MPI_Datatype;

extern MPI_Datatype const MPI_UNSIGNED;
extern MPI_Info const MPI_INFO_NULL;
extern MPI_Comm const MPI_COMM_NULL;
extern int const MPI_COMM_TYPE_SHARED;

int MPI_Error_string(int code, char* text, int* length);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* split);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);

#endif
