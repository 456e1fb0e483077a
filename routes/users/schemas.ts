import { Type } from '@sinclair/typebox'

import {
  Answer, ClubName, DateTime, Email, Id, Message, Nullable, NullableText, Role, Text,
} from '../../lib/schemas.ts'

const Club = Type.Union([ClubName, Type.Null()])
const Count = Type.Integer()

/** Everything kept of a user, the password's hash included; the contract has it so for these two answers. */
const FullUser = Answer({
  id: Type.String(),
  email: Type.String(),
  password: Type.String(),
  idpId: Nullable,
  avatar: Nullable,
  firstName: Type.String(),
  lastName: Type.String(),
  role: Role,
  clubId: Nullable,
  createdAt: DateTime,
  updatedAt: DateTime,
  club: Club,
})

export const list = {
  response: {
    200: Answer({
      users: Type.Array(Answer({
        id: Type.String(),
        email: Type.String(),
        firstName: Type.String(),
        lastName: Type.String(),
        role: Role,
        clubId: Nullable,
        createdAt: DateTime,
        club: Club,
        _count: Answer({ eventRegistrations: Count, blogs: Count }),
      })),
    }),
  },
}

export const analytics = {
  response: {
    200: Answer({
      analytics: Answer({
        totalUsers: Count,
        totalClubs: Count,
        totalEvents: Count,
        totalBlogs: Count,
        totalMentors: Count,
        roleCounts: Type.Array(Answer({ role: Role, _count: Answer({ role: Count }) })),
        recentRegistrations: Type.Array(Answer({
          id: Type.String(),
          userId: Type.String(),
          eventId: Type.String(),
          registeredAt: DateTime,
          event: Answer({ title: Type.String() }),
          user: Answer({ firstName: Type.String(), lastName: Type.String() }),
        })),
      }),
    }),
  },
}

export const update = {
  params: Type.Object({ id: Id() }),
  body: Type.Object({
    firstName: Type.Optional(Text({ minLength: 1 })),
    lastName: Type.Optional(Text({ minLength: 1 })),
    email: Type.Optional(Email()),
    clubId: Type.Optional(NullableText()),
  }),
  response: {
    200: Answer({ user: FullUser, message: Type.Literal('User updated successfully') }),
    404: Message('User not found'),
  },
}

export const changeRole = {
  params: Type.Object({ userId: Id() }),
  body: Type.Object({ newRole: Role }),
  response: {
    200: Answer({
      user: Answer({
        id: Type.String(),
        email: Type.String(),
        firstName: Type.String(),
        lastName: Type.String(),
        role: Role,
        club: Club,
      }),
      message: Type.Literal('Role changed successfully'),
    }),
    400: Message('You cannot change your own role'),
  },
}

export const assignClub = {
  params: Type.Object({ userId: Id() }),
  body: Type.Object({ clubId: Text({ minLength: 1 }) }),
  response: {
    200: Answer({ user: FullUser, message: Type.Literal('User assigned to club successfully') }),
  },
}

/** The contract has this operation refuse every request: it asks for a parameter that its path does not have. */
export const removeFromClub = {
  params: Type.Object({ id: Id() }),
}

export const remove = {
  params: Type.Object({ id: Id() }),
  response: {
    200: Message('User deleted successfully'),
    404: Message('User not found'),
  },
}
