import { Type } from '@sinclair/typebox'

import {
  Avatar, Count, DateTime, EmailAddress, EmailInput, EXAMPLE_EMAIL, EXAMPLE_ID, FirstName, IdParam, LastName, Message,
  NamedClub, NullableString, NullableTextInput, OpaqueId, Registration, ResponseObject, Role, TextInput, UserNotFound,
} from '../../lib/values/schemas.ts'

const Club = Type.Union([NamedClub, Type.Null()])
const ClubId = NullableString({ description: 'The id of the user\'s club.', examples: [EXAMPLE_ID] })

const name = { firstName: FirstName, lastName: LastName }

/** All columns of a user, the password hash included: the contract requires it in these two responses. */
const FullUser = ResponseObject({
  id: OpaqueId,
  email: EmailAddress,
  password: Type.String({
    description: 'The hash of the password.', examples: ['$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaA'],
  }),
  idpId: NullableString({
    description: 'The user\'s subject (`sub`) at the identity provider. `null` until they first sign in with it.',
    examples: ['110169484474386276334'],
  }),
  avatar: Avatar,
  ...name,
  role: Role,
  clubId: ClubId,
  createdAt: DateTime,
  updatedAt: DateTime,
  club: Club,
}, { title: 'User' })

export const list = {
  operationId: 'listUsers',
  summary: 'List users',
  description: 'The newest account comes first.',
  response: {
    200: ResponseObject({
      users: Type.Array(ResponseObject({
        id: OpaqueId,
        email: EmailAddress,
        ...name,
        role: Role,
        clubId: ClubId,
        createdAt: DateTime,
        club: Club,
        _count: ResponseObject({ eventRegistrations: Count, blogs: Count }),
      }, { title: 'ListedUser' })),
    }),
  },
}

export const analytics = {
  operationId: 'getAnalytics',
  summary: 'Get platform statistics',
  description: 'Counts users, clubs, events, blog posts and mentors, and lists the latest event registrations.',
  response: {
    200: ResponseObject({
      analytics: ResponseObject({
        totalUsers: Count,
        totalClubs: Count,
        totalEvents: Count,
        totalBlogs: Count,
        totalMentors: Count,
        roleCounts: Type.Array(ResponseObject({ role: Role, _count: ResponseObject({ role: Count }) }), {
          description: 'The number of users per role, in no particular order. A role without users is missing.',
        }),
        recentRegistrations: Type.Array(Registration, { description: 'The ten newest event registrations.' }),
      }, { title: 'Analytics' }),
    }),
  },
}

const params = Type.Object({ id: IdParam('The id of the user.') })
const userParams = Type.Object({ userId: params.properties.id })

export const update = {
  operationId: 'updateUser',
  summary: 'Update a user',
  description: 'Missing fields stay unchanged. Returns 500 if the email address is taken or the club does not exist.',
  params,
  body: Type.Object({
    firstName: Type.Optional(TextInput({ minLength: 1, examples: FirstName.examples })),
    lastName: Type.Optional(TextInput({ minLength: 1, examples: LastName.examples })),
    email: Type.Optional(EmailInput(EXAMPLE_EMAIL)),
    clubId: Type.Optional(NullableTextInput({
      description: 'The id of the user\'s club. `null` removes the user from their club.', examples: [EXAMPLE_ID],
    })),
  }, { title: 'UserChanges' }),
  response: {
    200: ResponseObject({ user: FullUser, message: Type.Literal('User updated successfully') }),
    404: UserNotFound,
  },
}

export const changeRole = {
  operationId: 'changeUserRole',
  summary: 'Change a user\'s role',
  description: 'The new role applies from the user\'s next sign-in. Returns 500 if the user does not exist.',
  params: userParams,
  body: Type.Object({ newRole: Role }, { title: 'RoleChange' }),
  response: {
    200: ResponseObject({
      user: ResponseObject({
        id: OpaqueId, email: EmailAddress, ...name, role: Role, club: Club,
      }, { title: 'UserWithRole' }),
      message: Type.Literal('Role changed successfully'),
    }),
    400: Message('You cannot change your own role'),
  },
}

export const assignClub = {
  operationId: 'assignUserToClub',
  summary: 'Add a user to a club',
  description: 'The role of the user and the head of the club stay unchanged. Returns 500 if the user or the club ' +
    'does not exist.',
  params: userParams,
  body: Type.Object({
    clubId: TextInput({ minLength: 1, description: 'The id of the club.', examples: [EXAMPLE_ID] }),
  }, { title: 'ClubAssignment' }),
  response: {
    200: ResponseObject({ user: FullUser, message: Type.Literal('User assigned to club successfully') }),
  },
}

/** The contract has this operation refuse every request: it asks for a parameter that its path does not have. */
export const removeFromClub = {
  operationId: 'removeUserFromClub',
  summary: 'Remove a user from a club (not supported)',
  description: 'This always returns 400. Use `PUT /users/{id}` with `clubId: null` instead.',
  deprecated: true,
  params,
  checkedByHandler: { params: userParams },
  neverSent: { 200: { ...Message('User removed from club successfully'), description: 'Never sent' } },
}

export const remove = {
  operationId: 'deleteUser',
  summary: 'Delete a user',
  description: 'Returns 500 if the user has blog posts or event registrations.',
  params,
  response: {
    200: Message('User deleted successfully'),
    404: UserNotFound,
  },
}
